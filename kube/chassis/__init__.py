"""The ChassisApi port and its wire adapters."""
