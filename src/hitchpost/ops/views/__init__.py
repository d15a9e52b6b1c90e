"""Views: what is known of sessions, as facts, words, tables and JSON. Nothing is written here."""
