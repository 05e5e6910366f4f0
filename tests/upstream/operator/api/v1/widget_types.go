// Package v1 has the API of the operator by which `mews envtest` is judged, laid out as kubebuilder does.
// +kubebuilder:object:generate=true
// +groupName=tests.mews.dev
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is that of the objects here.
	GroupVersion = schema.GroupVersion{Group: "tests.mews.dev", Version: "v1"}
	// SchemeBuilder adds the types to a scheme.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}
	// AddToScheme adds them.
	AddToScheme = SchemeBuilder.AddToScheme
)

// WidgetSpec is what is asked for.
type WidgetSpec struct {
	// +kubebuilder:validation:Minimum=1
	Size int32 `json:"size"`
}

// WidgetStatus is what is there.
type WidgetStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Widget is what the operator cares for.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty"`
}

// WidgetList is a list of them.
// +kubebuilder:object:root=true
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// DeepCopyObject copies it.
func (in *Widget) DeepCopyObject() runtime.Object {
	out := &Widget{TypeMeta: in.TypeMeta, ObjectMeta: *in.ObjectMeta.DeepCopy(), Spec: in.Spec}
	for _, each := range in.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *each.DeepCopy())
	}
	return out
}

// DeepCopyObject copies it.
func (in *WidgetList) DeepCopyObject() runtime.Object {
	out := &WidgetList{TypeMeta: in.TypeMeta, ListMeta: *in.ListMeta.DeepCopy()}
	for i := range in.Items {
		out.Items = append(out.Items, *in.Items[i].DeepCopyObject().(*Widget))
	}
	return out
}

func init() { SchemeBuilder.Register(&Widget{}, &WidgetList{}) }
