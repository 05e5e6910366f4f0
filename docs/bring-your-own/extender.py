"""An HTTP extender of one's own: of the nodes that fit it leaves the last by name.  usage: extender.py PORT"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LastByName(BaseHTTPRequestHandler):
    """``filter`` of an extender with nodeCacheCapable: true."""

    def do_POST(self) -> None:
        """ExtenderArgs -> ExtenderFilterResult (k8s.io/kube-scheduler/extender/v1)."""
        arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = sorted(arguments["NodeNames"])
        answer = json.dumps({"NodeNames": names[-1:], "FailedNodes": dict.fromkeys(names[:-1], "not the last")})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer.encode())


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), LastByName).serve_forever()
