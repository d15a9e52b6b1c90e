"""The command ``hitch``: one file per command. Nothing is decided here; words come from the model, deeds from ops."""
