"""Names on the API: resources, annotations, variables (contract gpushare.md section 1)."""

from __future__ import annotations

MEMORY_RESOURCE, COUNT_RESOURCE = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"

INDEX, OLD_INDEX = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_GPU_ID"
DEVICE_MEMORY, POD_MEMORY = "ALIYUN_COM_GPU_MEM_DEV", "ALIYUN_COM_GPU_MEM_POD"
CONTAINER_MEMORY = "ALIYUN_COM_GPU_MEM_CONTAINER"
ASSIGNED, ASSUME_TIME = "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
UUID = "ALIYUN_COM_GPU_MEM_UUID"
"""Ours: an index means another GPU once the cards have changed, a UUID never does."""
VISIBLE = "NVIDIA_VISIBLE_DEVICES"

ROOM = "mews.dev/gpushare-room"
"""On a pod that was refused: a node that has room since, and when that was seen."""
NODE_GPUS = "mews.dev/gpushare-devices"
"""On a node: its GPUs by index, UUID and memory, as the device plugin sees them; JSON."""
UNHEALTHY_PREFIX, LEDGER_PREFIX = "unhealthy-gpu-", "gpushare-ledger-"
"""ConfigMaps of a node: indices of broken GPUs; what was given to which pod."""
