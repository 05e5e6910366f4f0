// Puts pods to Koordinator's own webhooks: what the mutating one makes of a pod, and whether the validating one admits it,
// with its message. Built into upstream's package of the validating one; reads and writes JSON, one case a line.

package validating

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	jsonpatch "github.com/evanphx/json-patch"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	configv1alpha1 "github.com/koordinator-sh/koordinator/apis/config/v1alpha1"
	quotav1alpha1 "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/webhook/pod/mutating"
)

type mewsCase struct {
	Operation admissionv1.Operation `json:"operation"`
	Pod       json.RawMessage       `json:"pod"`
	Old       json.RawMessage       `json:"old"`
}

type mewsVerdict struct {
	Allowed bool   `json:"allowed"`
	Code    int32  `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type mewsAnswer struct {
	Raw            mewsVerdict                   `json:"raw"`
	Panic          string                        `json:"panic,omitempty"`
	Made           mewsVerdict                   `json:"made"`
	Resources      []corev1.ResourceRequirements `json:"resources,omitempty"`
	InitContainers []corev1.ResourceRequirements `json:"initContainers,omitempty"`
}

type mewsHooks struct {
	mutating   *mutating.PodMutatingHandler
	validating *PodValidatingHandler
}

func mewsNewHooks(t *testing.T) mewsHooks {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, configv1alpha1.AddToScheme, quotav1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	client := fake.NewClientBuilder().WithScheme(scheme).Build()
	decoder := admission.NewDecoder(scheme)
	return mewsHooks{
		&mutating.PodMutatingHandler{Client: client, Decoder: decoder},
		&PodValidatingHandler{Client: client, Decoder: decoder},
	}
}

func mewsRequest(one *mewsCase, pod []byte) admission.Request {
	request := newAdmissionRequest(one.Operation, runtime.RawExtension{Raw: pod}, runtime.RawExtension{Raw: one.Old}, "")
	request.Namespace = "default"
	return admission.Request{AdmissionRequest: request}
}

func (h mewsHooks) verdict(one *mewsCase, pod []byte) (verdict mewsVerdict) {
	response := h.validating.Handle(context.Background(), mewsRequest(one, pod))
	verdict.Allowed = response.Allowed
	if response.Result != nil && !response.Allowed {
		verdict.Code, verdict.Message = response.Result.Code, response.Result.Message
	}
	return verdict
}

func (h mewsHooks) mutated(one *mewsCase) []byte {
	response := h.mutating.Handle(context.Background(), mewsRequest(one, one.Pod))
	if !response.Allowed {
		panic(response.Result.Message)
	}
	if len(response.Patches) == 0 {
		return one.Pod
	}
	raw, err := json.Marshal(response.Patches)
	if err != nil {
		panic(err)
	}
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		panic(err)
	}
	made, err := patch.Apply(one.Pod)
	if err != nil {
		panic(err)
	}
	return made
}

// A pod is put to the validating one as it is, and then through both as an API server would have it: what the first makes
// of it is what the second sees.
func (h mewsHooks) answerTo(one *mewsCase) (answer mewsAnswer) {
	answer.Raw = h.verdict(one, one.Pod)
	if one.Operation != admissionv1.Create {
		return answer
	}
	defer func() {
		if found := recover(); found != nil {
			answer.Panic = fmt.Sprint(found)
		}
	}()
	pod := h.mutated(one)
	answer.Made = h.verdict(one, pod)
	var made corev1.Pod
	if err := json.Unmarshal(pod, &made); err != nil {
		panic(err)
	}
	for _, container := range made.Spec.Containers {
		answer.Resources = append(answer.Resources, container.Resources)
	}
	for _, container := range made.Spec.InitContainers {
		answer.InitContainers = append(answer.InitContainers, container.Resources)
	}
	return answer
}

func TestMewsAnswers(t *testing.T) {
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
	hooks := mewsNewHooks(t)
	for lines.Scan() {
		var one mewsCase
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if err := encoder.Encode(hooks.answerTo(&one)); err != nil {
			t.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
