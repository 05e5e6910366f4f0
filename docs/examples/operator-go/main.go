// An operator by controller-runtime: each ConfigMap labelled gang=N becomes N pods, which go with it.
package main

import (
	"context"
	"fmt"
	"log"
	"strconv"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type gangs struct{ client.Client }

func (g gangs) Reconcile(ctx context.Context, request runtime.Request) (runtime.Result, error) {
	var gang core.ConfigMap
	if err := g.Get(ctx, request.NamespacedName, &gang); err != nil {
		return runtime.Result{}, client.IgnoreNotFound(err)
	}
	members, err := strconv.Atoi(gang.Labels["gang"])
	if err != nil {
		return runtime.Result{}, nil // none of ours
	}
	for number := range members {
		pod := &core.Pod{
			ObjectMeta: meta.ObjectMeta{Name: fmt.Sprintf("%s-%d", gang.Name, number), Namespace: gang.Namespace},
			Spec:       core.PodSpec{Containers: []core.Container{{Name: "main", Image: "mews/gpu-hold"}}},
		}
		if err := runtime.SetControllerReference(&gang, pod, g.Scheme()); err != nil {
			return runtime.Result{}, err
		}
		if err := g.Create(ctx, pod); err != nil && !errors.IsAlreadyExists(err) {
			return runtime.Result{}, err
		}
	}
	return runtime.Result{}, nil
}

func main() {
	manager, err := runtime.NewManager(runtime.GetConfigOrDie(), runtime.Options{
		Metrics: server.Options{BindAddress: "0"},
	})
	check(err)
	check(runtime.NewControllerManagedBy(manager).For(&core.ConfigMap{}).Owns(&core.Pod{}).Complete(gangs{manager.GetClient()}))
	check(manager.Start(runtime.SetupSignalHandler()))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
