// Package controller has the operator's reconciler.
package controller

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	testsv1 "example.com/mews/operator/api/v1"
)

const finalizer = "tests.mews.dev/finalizer"

// WidgetReconciler makes a ConfigMap for each Widget.
type WidgetReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// Reconcile brings the ConfigMap to what the Widget asks for.
func (r *WidgetReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var widget testsv1.Widget
	if err := r.Get(ctx, req.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		controllerutil.RemoveFinalizer(&widget, finalizer)
		return ctrl.Result{}, r.Update(ctx, &widget)
	}
	if controllerutil.AddFinalizer(&widget, finalizer) {
		if err := r.Update(ctx, &widget); err != nil {
			return ctrl.Result{}, err
		}
	}
	config := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: widget.Name, Namespace: widget.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, &config, func() error {
		config.Data = map[string]string{"size": strconv.Itoa(int(widget.Spec.Size))}
		return controllerutil.SetControllerReference(&widget, &config, r.Scheme)
	}); err != nil {
		return ctrl.Result{}, err
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Made", ObservedGeneration: widget.Generation}
	if meta.SetStatusCondition(&widget.Status.Conditions, ready) {
		return ctrl.Result{}, r.Status().Update(ctx, &widget)
	}
	return ctrl.Result{}, nil
}

// SetupWithManager registers it.
func (r *WidgetReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&testsv1.Widget{}).Owns(&corev1.ConfigMap{}).Complete(r)
}
