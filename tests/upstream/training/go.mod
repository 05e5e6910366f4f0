module example.com/mews/upstream/training

go 1.23

require github.com/kubeflow/training-operator v1.9.0
