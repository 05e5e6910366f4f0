"""KubeComp: GPU pooling by chassis reconfiguration (scheduler plugin, Reconfig-Mgr, DisagGPU-DevMgr)."""
