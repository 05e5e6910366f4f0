package controller

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	testsv1 "example.com/mews/operator/api/v1"
)

var _ = Describe("Widget Controller", Ordered, func() {
	key := types.NamespacedName{Name: "test-resource", Namespace: "default"}

	It("should reconcile once when it is called", func() {
		widget := &testsv1.Widget{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}, Spec: testsv1.WidgetSpec{Size: 3}}
		Expect(k8sClient.Create(ctx, widget)).To(Succeed())
		reconciler := &WidgetReconciler{Client: k8sClient, Scheme: k8sClient.Scheme()}
		_, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		Expect(err).NotTo(HaveOccurred())
		var config corev1.ConfigMap
		Expect(k8sClient.Get(ctx, key, &config)).To(Succeed())
		Expect(config.Data).To(HaveKeyWithValue("size", "3"))
		Expect(metav1.IsControlledBy(&config, widget)).To(BeTrue())
	})

	It("should refuse what the schema refuses", func() {
		small := &testsv1.Widget{ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: key.Namespace}}
		err := k8sClient.Create(ctx, small)
		Expect(errors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(ContainSubstring("spec.size in body should be greater than or equal to 1"))
	})

	It("should follow changes as a manager runs it", func() {
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: k8sClient.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		Expect((&WidgetReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)).To(Succeed())
		go func() {
			defer GinkgoRecover()
			Expect(mgr.Start(ctx)).To(Succeed())
		}()
		var widget testsv1.Widget
		Expect(k8sClient.Get(ctx, key, &widget)).To(Succeed())
		widget.Spec.Size = 5
		Expect(k8sClient.Update(ctx, &widget)).To(Succeed())
		Eventually(func(g Gomega) {
			var config corev1.ConfigMap
			g.Expect(k8sClient.Get(ctx, key, &config)).To(Succeed())
			g.Expect(config.Data).To(HaveKeyWithValue("size", "5"))
			g.Expect(k8sClient.Get(ctx, key, &widget)).To(Succeed())
			ready := meta.FindStatusCondition(widget.Status.Conditions, "Ready")
			g.Expect(ready).NotTo(BeNil())
			g.Expect(ready.ObservedGeneration).To(Equal(int64(2)))
		}, 20*time.Second, 50*time.Millisecond).Should(Succeed())
		var config corev1.ConfigMap
		Expect(k8sClient.Get(ctx, key, &config)).To(Succeed())
		Expect(k8sClient.Delete(ctx, &config)).To(Succeed())
		Eventually(func() error { return k8sClient.Get(ctx, key, &corev1.ConfigMap{}) }, 20*time.Second).Should(Succeed())
		Expect(k8sClient.Delete(ctx, &widget)).To(Succeed())
		Eventually(func() bool {
			return errors.IsNotFound(k8sClient.Get(ctx, key, &testsv1.Widget{}))
		}, 20*time.Second, 50*time.Millisecond).Should(BeTrue())
	})
})
