"""A fleet: sessions in pods, links to them, and PostgreSQL, which has what hubs' copies are made from."""
