// Something between a client and a server that can fail: it passes bytes on, until its connections are cut.

import { connect, createServer } from "node:net";

export async function proxyTo(url) {
  const { hostname, port, pathname } = new URL(url);
  const sockets = new Set();
  const passed = { sent: "", received: "" };
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const [source, sink, direction] of [[client, upstream, "sent"], [upstream, client, "received"]]) {
      sockets.add(source);
      source.on("data", (data) => {
        passed[direction] += data.toString("latin1").toLowerCase();
        sink.write(data);
      });
      source.on("error", () => {});
      source.on("close", () => {
        sockets.delete(source);
        sink.destroy();
      });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const count = (text, what) => text.split(what).length - 1;
  return {
    url: `http://127.0.0.1:${server.address().port}${pathname}`,
    // How many streams the server has begun, and how many the client has asked to go on with.
    streams: () => count(passed.received, "\r\ncontent-type: text/event-stream\r\n"),
    resumed: () => count(passed.sent, "\r\nlast-event-id: "),
    cut: () => sockets.forEach((socket) => socket.destroy()),
    close: () => server.close(),
  };
}
