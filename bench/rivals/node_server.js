// node-pty and ws for one command: node node_server.js PORT COMMAND… Prints "ready" once it listens.
const pty = require("node-pty");
const { WebSocketServer } = require("ws");
const [port, command, ...args] = process.argv.slice(2);
const server = new WebSocketServer({ port: Number(port), host: "127.0.0.1", perMessageDeflate: false }, () =>
  console.log('"ready"'),
);
server.on("connection", (socket) => {
  const terminal = pty.spawn(command, args, { cols: 80, rows: 24, encoding: null });
  terminal.onData((data) => {
    socket.send(data);
    if (socket.bufferedAmount > 1 << 20) {
      terminal.pause();
      const timer = setInterval(() => {
        if (socket.bufferedAmount < 1 << 19) {
          clearInterval(timer);
          terminal.resume();
        }
      }, 1);
    }
  });
  socket.on("message", (data) => terminal.write(data.toString()));
  socket.on("close", () => terminal.kill());
});
