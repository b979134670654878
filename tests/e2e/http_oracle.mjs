// Reads byte streams as another HTTP server does: Node's. Records on stdin (a length in 4
// bytes, little-endian, and the bytes), for each a JSON line {requests, error} on stdout.
import http from "node:http";
import { Duplex } from "node:stream";

const PATIENCE_MS = 5000;

function fnv1a(hash, bytes) {
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return hash;
}

// A connection that is nothing but the bytes and then the client's FIN.
class Connection extends Duplex {
  constructor(bytes) {
    super({ allowHalfOpen: true });
    this.rest = bytes;
  }
  _read() {
    if (this.rest?.length) this.push(this.rest);
    this.rest = undefined;
    this.push(null);
  }
  _write(_chunk, _encoding, done) {
    done();
  }
  setTimeout() {}
  setNoDelay() {}
  setKeepAlive() {}
}

function frame(bytes) {
  return new Promise((resolve) => {
    const requests = [];
    let error = null;
    const server = http.createServer({ maxHeaderSize: 65536, insecureHTTPParser: false });
    const finish = () => {
      clearTimeout(timer);
      server.close();
      resolve({ requests: requests.filter((r) => r.complete).map((r) => r.line()), error });
    };
    const timer = setTimeout(() => {
      error = "HANG";
      finish();
    }, PATIENCE_MS);
    server.httpAllowHalfOpen = true; // answer what came before the FIN
    const onRequest = (req, res) => {
      const r = { complete: false, length: 0, hash: 2166136261 };
      r.line = () => `${req.method} ${req.url} ${r.length} ${r.hash.toString(16).padStart(8, "0")}`;
      requests.push(r);
      req.on("data", (chunk) => {
        r.length += chunk.length;
        r.hash = fnv1a(r.hash, chunk);
      });
      req.on("end", () => {
        r.complete = req.complete;
        res.end("x");
      });
      req.on("error", () => {});
    };
    server.on("request", onRequest);
    server.on("checkContinue", onRequest);
    server.on("clientError", (e, socket) => {
      error ??= e.code ?? String(e);
      socket.destroy();
    });
    const connection = new Connection(bytes);
    connection.on("error", () => {});
    connection.on("close", finish);
    server.emit("connection", connection);
  });
}

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const input = Buffer.concat(chunks);
for (let at = 0; at < input.length; ) {
  const length = input.readUInt32LE(at);
  const bytes = input.subarray(at + 4, at + 4 + length);
  console.log(JSON.stringify(await frame(bytes)));
  at += 4 + length;
}
