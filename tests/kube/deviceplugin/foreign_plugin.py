"""Someone else's device plugin: written against the published .proto alone, with nothing of ours.

Run as a process of its own: ``python foreign_plugin.py FOLDER RESOURCE COUNT``; ``foreign_pb2`` (on its path) is what
protoc makes of the .proto. It uses threads and grpcio's stable synchronous interface, watches ``kubelet.sock`` and
comes back after a kubelet's restart. Every call it hears goes to standard output as one line of JSON.
"""

import concurrent.futures
import json
import os
import sys
import threading
import time

import foreign_pb2 as pb
import grpc

folder, resource, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
socket = "foreign.sock"
changed = threading.Condition()
sick: set[str] = set()


def tell(event, **fields):
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def options(request, context):
    tell("GetDevicePluginOptions")
    return pb.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)


def watch(request, context):
    tell("ListAndWatch")
    context.add_callback(lambda: tell("ListAndWatch ended"))
    while context.is_active():
        names = [f"board-{i}" for i in range(count)]
        yield pb.ListAndWatchResponse(
            devices=[
                pb.Device(
                    ID=name,
                    health="Unhealthy" if name in sick else "Healthy",
                    topology=pb.TopologyInfo(nodes=[pb.NUMANode(ID=0)]),
                )
                for name in names
            ]
        )
        with changed:
            changed.wait()


def prefer(request, context):
    asked = request.container_requests[0]
    tell("GetPreferredAllocation", available=len(asked.available_deviceIDs), size=asked.allocation_size)
    chosen = sorted(asked.available_deviceIDs)[-asked.allocation_size :]
    return pb.PreferredAllocationResponse(
        container_responses=[pb.ContainerPreferredAllocationResponse(deviceIDs=chosen)]
    )


def allocate(request, context):
    ids = sorted(request.container_requests[0].devices_ids)
    tell("Allocate", ids=ids)
    while "allocate" in sick:
        time.sleep(0.01)
    return pb.AllocateResponse(
        container_responses=[
            pb.ContainerAllocateResponse(
                envs={"BOARDS": ",".join(ids)},
                mounts=[pb.Mount(container_path="/opt/boards", host_path="/etc", read_only=True)],
                devices=[pb.DeviceSpec(container_path="/dev/board0", host_path="/dev/null", permissions="rw")],
                annotations={"example.com/slot": "3"},
                cdi_devices=[pb.CDIDevice(name="example.com/board=b7")],
            )
        ]
    )


def pre_start(request, context):
    ids = sorted(request.devices_ids)
    tell("PreStartContainer", ids=ids)
    return pb.PreStartContainerResponse()


def unary(function, request):
    return grpc.unary_unary_rpc_method_handler(
        function,
        request_deserializer=request.FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


def serve():
    path = os.path.join(folder, socket)
    if os.path.exists(path):
        os.unlink(path)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
    handlers = {
        "GetDevicePluginOptions": unary(options, pb.Empty),
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(
            watch, request_deserializer=pb.Empty.FromString, response_serializer=lambda m: m.SerializeToString()
        ),
        "GetPreferredAllocation": unary(prefer, pb.PreferredAllocationRequest),
        "Allocate": unary(allocate, pb.AllocateRequest),
        "PreStartContainer": unary(pre_start, pb.PreStartContainerRequest),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers),))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    return server


def register():
    with grpc.insecure_channel(f"unix:{folder}/kubelet.sock") as channel:
        call = channel.unary_unary(
            "/v1beta1.Registration/Register",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=pb.Empty.FromString,
        )
        call(pb.RegisterRequest(version="v1beta1", endpoint=socket, resource_name=resource), timeout=30)
    tell("registered")


def commands():
    for line in sys.stdin:
        word, name = line.split()
        (sick.add if word == "break" else sick.discard)(name)
        with changed:
            changed.notify_all()
        tell(word)
    os._exit(0)


threading.Thread(target=commands, daemon=True).start()
kubelet = os.path.join(folder, "kubelet.sock")
while True:
    seen = os.stat(kubelet).st_mtime_ns
    server = serve()
    register()
    while True:
        time.sleep(0.05)
        try:
            if os.stat(kubelet).st_mtime_ns != seen:
                break
        except FileNotFoundError:
            continue
    server.stop(None).wait()
