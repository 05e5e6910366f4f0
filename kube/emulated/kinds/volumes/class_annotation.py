"""The annotation that named a storage class before its field did."""

from __future__ import annotations

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
