"""Measurements of hitch, each beside an anchor that is measured in the same run: machines differ, ratios less."""
