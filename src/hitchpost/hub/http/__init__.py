"""HTTP and WebSocket: schemas, routes, and who may ask."""
