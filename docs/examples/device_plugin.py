"""A device plugin on grpcio alone: announces widgets, and gives a container the names of its own.

usage: device_plugin.py FOLDER COUNT          (FOLDER: /var/lib/kubelet/device-plugins on a real node)
"""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc

sys.path.insert(0, os.path.dirname(__file__))
messages, services = grpc.protos_and_services("deviceplugin.proto")  # grpcio-tools reads it


class Widgets(services.DevicePluginServicer):
    """As many as it is given."""

    def __init__(self, count):
        self.names = [f"widget-{number}" for number in range(count)]

    def GetDevicePluginOptions(self, request, context):
        """Nothing that the kubelet should do beside."""
        return messages.DevicePluginOptions()

    def ListAndWatch(self, request, context):
        """One list, until the kubelet goes."""
        devices = [messages.Device(ID=name, health="Healthy") for name in self.names]
        yield messages.ListAndWatchResponse(devices=devices)
        gone = threading.Event()
        context.add_callback(gone.set)
        gone.wait()

    def Allocate(self, request, context):
        """The names, in the container's environment."""
        answers = [{"envs": {"WIDGETS": ",".join(each.devices_ids)}} for each in request.container_requests]
        return messages.AllocateResponse(container_responses=answers)


def main(folder, count):
    """Serve, and register with the kubelet once it is there."""
    server = grpc.server(ThreadPoolExecutor(4))
    services.add_DevicePluginServicer_to_server(Widgets(int(count)), server)
    server.add_insecure_port(f"unix:{folder}/widget.sock")
    server.start()
    with grpc.insecure_channel(f"unix:{folder}/kubelet.sock") as channel:
        request = messages.RegisterRequest(
            version="v1beta1", endpoint="widget.sock", resource_name="example.com/widget"
        )
        services.RegistrationStub(channel).Register(request, wait_for_ready=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main(*sys.argv[1:])
