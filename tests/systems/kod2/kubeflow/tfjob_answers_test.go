// Puts TFJobs with their pods and services to Kubeflow's own reconciler until nothing changes any more: conditions, replica
// statuses, pods and services that are then there. Built into upstream's package; reads and writes JSON, one case a line.

package tensorflow

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"sort"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/common/util"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/expectation"
)

const mewsPasses = 12

type mewsCase struct {
	Job      kubeflowv1.TFJob `json:"job"`
	Pods     []corev1.Pod     `json:"pods"`
	Services []corev1.Service `json:"services"`
	Started  int64            `json:"started"`
}

type mewsCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type mewsAnswer struct {
	Error      string                      `json:"error,omitempty"`
	Settled    bool                        `json:"settled"`
	Conditions []mewsCondition             `json:"conditions"`
	Replicas   map[string]map[string]int32 `json:"replicas"`
	Pods       map[string]string           `json:"pods"`
	Services   []string                    `json:"services"`
	Ended      bool                        `json:"ended"`
}

// Creates and deletes through the client that the reconciler reads by: upstream's own controls go by another one.
type mewsControl struct{ client.Client }

func (c mewsControl) made(object client.Object, namespace string, ref *metav1.OwnerReference) error {
	object.SetNamespace(namespace)
	object.SetResourceVersion("")
	if ref != nil {
		object.SetOwnerReferences(append(object.GetOwnerReferences(), *ref))
	}
	return c.Create(context.Background(), object)
}

func (c mewsControl) CreatePods(namespace string, template *corev1.PodTemplateSpec, owner runtime.Object) error {
	return c.CreatePodsWithControllerRef(namespace, template, owner, nil)
}

func (c mewsControl) CreatePodsOnNode(node, namespace string, template *corev1.PodTemplateSpec, owner runtime.Object, ref *metav1.OwnerReference) error {
	return c.CreatePodsWithControllerRef(namespace, template, owner, ref)
}

func (c mewsControl) CreatePodsWithControllerRef(namespace string, template *corev1.PodTemplateSpec, owner runtime.Object, ref *metav1.OwnerReference) error {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Status.Phase = corev1.PodPending
	return c.made(pod, namespace, ref)
}

func (c mewsControl) DeletePod(namespace, name string, owner runtime.Object) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return client.IgnoreNotFound(c.Delete(context.Background(), pod))
}

func (c mewsControl) PatchPod(namespace, name string, data []byte) error { return nil }

func (c mewsControl) CreateServices(namespace string, service *corev1.Service, owner runtime.Object) error {
	return c.made(service, namespace, nil)
}

func (c mewsControl) CreateServicesWithControllerRef(namespace string, service *corev1.Service, owner runtime.Object, ref *metav1.OwnerReference) error {
	return c.made(service, namespace, ref)
}

func (c mewsControl) PatchService(namespace, name string, data []byte) error { return nil }

func (c mewsControl) DeleteService(namespace, name string, owner runtime.Object) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return client.IgnoreNotFound(c.Delete(context.Background(), service))
}

func mewsReconciler(t *testing.T, one *mewsCase) *TFJobReconciler {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kubeflowv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	started := metav1.NewTime(time.Now().Add(-time.Duration(one.Started) * time.Second))
	one.Job.Status.StartTime = &started
	objects := []client.Object{&one.Job}
	for number := range one.Pods {
		objects = append(objects, &one.Pods[number])
	}
	for number := range one.Services {
		objects = append(objects, &one.Services[number])
	}
	made := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&kubeflowv1.TFJob{}).WithObjects(objects...).Build()
	recorder := record.NewFakeRecorder(10000)
	r := &TFJobReconciler{Client: made, Scheme: scheme, recorder: recorder, apiReader: made, Log: log.Log}
	r.JobController = common.JobController{
		Controller:     r,
		Expectations:   expectation.NewControllerExpectations(),
		WorkQueue:      &util.FakeWorkQueue[string]{},
		Recorder:       recorder,
		PodControl:     mewsControl{made},
		ServiceControl: mewsControl{made},
	}
	return r
}

func mewsLook(r *TFJobReconciler, key types.NamespacedName) (answer mewsAnswer) {
	answer.Replicas, answer.Pods = map[string]map[string]int32{}, map[string]string{}
	var job kubeflowv1.TFJob
	if err := r.Get(context.Background(), key, &job); err != nil {
		answer.Error = string(apierrors.ReasonForError(err))
		return answer
	}
	for _, each := range job.Status.Conditions {
		answer.Conditions = append(answer.Conditions, mewsCondition{string(each.Type), string(each.Status), each.Reason, each.Message})
	}
	for role, counts := range job.Status.ReplicaStatuses {
		found := map[string]int32{}
		for name, value := range map[string]int32{"active": counts.Active, "succeeded": counts.Succeeded, "failed": counts.Failed} {
			if value != 0 {
				found[name] = value
			}
		}
		if len(found) > 0 {
			answer.Replicas[string(role)] = found
		}
	}
	answer.Ended = job.Status.CompletionTime != nil
	var pods corev1.PodList
	var services corev1.ServiceList
	if err := r.List(context.Background(), &pods); err != nil {
		answer.Error = err.Error()
	}
	if err := r.List(context.Background(), &services); err != nil {
		answer.Error = err.Error()
	}
	for _, pod := range pods.Items {
		phase := string(pod.Status.Phase)
		if pod.DeletionTimestamp != nil {
			phase += ", deleting"
		}
		answer.Pods[pod.Name] = phase
	}
	for _, service := range services.Items {
		answer.Services = append(answer.Services, service.Name)
	}
	sort.Strings(answer.Services)
	return answer
}

func mewsAnswerTo(t *testing.T, one *mewsCase) mewsAnswer {
	r := mewsReconciler(t, one)
	key := types.NamespacedName{Namespace: one.Job.Namespace, Name: one.Job.Name}
	before := mewsLook(r, key)
	for pass := 0; pass < mewsPasses; pass++ {
		// Nobody tells it here that what it deleted is gone.
		r.Expectations = expectation.NewControllerExpectations()
		_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		after := mewsLook(r, key)
		if err != nil {
			after.Error = err.Error()
		}
		if reflect.DeepEqual(before, after) {
			after.Settled = true
			return after
		}
		before = after
	}
	return before
}

func TestMewsAnswers(t *testing.T) {
	logrus.SetOutput(io.Discard)
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	cases, err := os.Open(os.Getenv("MEWS_CASES"))
	if err != nil {
		t.Fatal(err)
	}
	defer cases.Close()
	out, err := os.Create(os.Getenv("MEWS_ANSWERS"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	lines := bufio.NewScanner(cases)
	lines.Buffer(nil, 16<<20)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		var one mewsCase
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if err := encoder.Encode(mewsAnswerTo(t, &one)); err != nil {
			t.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
