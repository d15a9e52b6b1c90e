"""``hitch`` for a hub elsewhere. ``table.py`` has every command and what it asks of that hub; start there.

``contexts.py`` keeps the hubs by name, ``hub.py`` asks one over HTTPS, ``stand_in.py`` stands for a run's keeper here.
"""
