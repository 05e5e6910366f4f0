"""The real etcd and kube-apiserver, with emulated kubelets as their nodes."""
