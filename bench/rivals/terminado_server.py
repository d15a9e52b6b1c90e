"""A terminado server for one command: ``terminado_server.py PORT COMMAND…``. Prints ``ready`` once it listens."""

import json
import sys

import terminado
import tornado.ioloop
import tornado.web

port, command = int(sys.argv[1]), sys.argv[2:]
manager = terminado.UniqueTermManager(shell_command=command)
app = tornado.web.Application([(r"/ws", terminado.TermSocket, {"term_manager": manager})])
app.listen(port, "127.0.0.1")
print(json.dumps("ready"), flush=True)
tornado.ioloop.IOLoop.current().start()
