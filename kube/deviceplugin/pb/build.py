"""Message classes from a compiled .proto file, in a descriptor pool of their own.

Only the protobuf runtime's public interface is used, so that the generated modules fit every runtime from 5 on, and
packages with names as common as ``v1`` cannot clash with another library's.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass


def messages(compiled: bytes) -> dict[str, Any]:
    """Name -> class of every top-level message of a serialized FileDescriptorProto."""
    file = FileDescriptorProto.FromString(compiled)
    pool = DescriptorPool()
    pool.AddSerializedFile(compiled)
    return {
        message.name: GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{message.name}"))
        for message in file.message_type
    }
