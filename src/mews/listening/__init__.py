"""The one place where the product opens ports and sockets. Each transport has one factory:

| transport | factory | what opens there |
|---|---|---|
| HTTP on a loop | ``http.HttpListener`` | embedded API, kubelets, node agents, live sessions, extenders, webhooks |
| HTTP on threads | ``mews.emulator.http_server.HttpServer`` | chassis, control, recordings (a Flask application each) |
| HTTP, wrong on purpose | ``mews.emulator.wrongs.front.WrongServer`` | `mews serve --wrong`, `mews proxy` |
| WSGI on threads | ``wsgi.ThreadedHttp`` | ``/metrics`` of a component |
| gRPC | ``rpc.rpc_server`` | device plugins, pod-resources, kubelets' registration, runtime hooks |
| bytes on a loop | ``streams.serve_streams`` | parameter servers of the played trainer |
| datagrams of a group | ``datagrams.GroupListener`` | discovery of Redfish services |
| unix sockets on threads | ``local.LocalThreads`` | NVML of an emulated host |
| ports held for others | ``ports`` | what the harness tells another program to listen on |

Where too few files may be open, each goes on with the connections that it has and reports it in a line a minute.
``tests/test_listeners.py`` fails for a listener that is made anywhere else, and for an open port that SECURITY.md or
``tests/fuzz`` does not know. Nothing is imported here: a virtual run opens no port and must not load aiohttp or grpc.
"""
