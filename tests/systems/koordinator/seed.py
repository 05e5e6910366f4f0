"""The blocks of the seed's own document, as they stand there."""

from __future__ import annotations

CAPACITY = """
status:
  capacity:
    kubernetes.io/gpu-core: 400
    kubernetes.io/gpu-memory: "32GB"
    kubernetes.io/gpu-memory-ratio: 400
  allocatable:
    kubernetes.io/gpu-core: 400
    kubernetes.io/gpu-memory: "32GB"
    kubernetes.io/gpu-memory-ratio: 400
"""
OTHER_CAPACITY = """
status:
  capacity:
    kubernetes.io/rdma: 100
    kubernetes.io/fpga: 100
  allocatable:
    kubernetes.io/rdma: 100
    kubernetes.io/fpga: 100
"""
NVIDIA = """
resources:
  requests:
    nvidia.com/gpu: "2"
    cpu: "4"
    memory: "8Gi"
"""
NVIDIA_TRANSLATED = """
resources:
  requests:
    kubernetes.io/gpu-core: "200"
    kubernetes.io/gpu-memory-ratio: "200"
    kubernetes.io/gpu-memory: "16Gi" # assume 8G memory in bytes per GPU
    cpu: "4"
    memory: "8Gi"
"""
HALF = """
resources:
   requests:
    kubernetes.io/gpu: "50"
    cpu: "4"
    memory: "8Gi"
"""
HALF_TRANSLATED = """
resources:
  requests:
    kubernetes.io/gpu-core: "50"
    kubernetes.io/gpu-memory-ratio: "50"
    kubernetes.io/gpu-memory: "4Gi" # assume 8G memory in bytes for the GPU
    cpu: "4"
    memory: "8Gi"
"""
CORE_AND_RATIO = """
resources:
  requests:
    kubernetes.io/gpu-core: "50"
    kubernetes.io/gpu-memory-ratio: "60"
    cpu: "4"
    memory: "8Gi"
"""
CORE_AND_MEMORY = """
resources:
  requests:
    kubernetes.io/gpu-core: "60"
    kubernetes.io/gpu-memory: "4Gi"
    cpu: "4"
    memory: "8Gi"
"""
ADAPTER = """
resources:
  requests:
    kubernetes.io/rdma: "100"
    cpu: "4"
    memory: "8Gi"
"""
ALLOCATION = """
{
  "gpu": [
    {
      "minor": 0,
      "resouurces": {
        "kubernetes.io/gpu-core": 100,
        "kubernetes.io/gpu-mem-ratio": 100,
        "kubernetes.io/gpu-mem": "16Gi"
      }
    },
    {
      "minor": 1,
      "resouurces": {
        "kubernetes.io/gpu-core": 100,
        "kubernetes.io/gpu-mem-ratio": 100,
        "kubernetes.io/gpu-mem": "16Gi"
      }
    }
  ]
}
"""
DEVICE = """
apiVersion: scheduling.koordinator.sh/v1alpha1
kind: Device
metadata:
  name: node-1
  annotations:
    node.koordinator.sh/gpu-checkpoints: |-
      [
        {
          "podUID": "fa8983dc-bb76-4eeb-8dcc-556fbd44d7ce",
          "containerName": "cuda-container",
          "resourceName": "nvidia.com/gpu",
          "deviceIDs": ["GPU-36b27e44-b086-46f7-f2dc-73c36dc65991"]
        }
      ]
spec:
  devices:
  - health: true
    id: GPU-98583a5c-c155-9cf6-f955-03c189d3dbfb
    minor: 0
    resources:
      kubernetes.io/gpu-core: "100"
      kubernetes.io/gpu-memory: 15472384Ki
      kubernetes.io/gpu-memory-ratio: "100"
    type: gpu
  - health: true
    id: GPU-7f6410b9-bdf7-f9a5-de09-aa5ec31a7124
    minor: 1
    resources:
      kubernetes.io/gpu-core: "100"
      kubernetes.io/gpu-memory: 15472384Ki
      kubernetes.io/gpu-memory-ratio: "100"
    type: gpu
status: {}
"""
