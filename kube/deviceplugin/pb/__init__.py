"""Messages of the kubelet's device plugin and podresources interfaces.

The ``*_pb2`` modules are generated from the ``.proto`` files beside them, which are written by us:
``python -m mews.kube.deviceplugin.pb.generate`` (needs grpcio-tools).
"""
