/* libcuda.so.1: there is no CUDA here, and every call that a program begins with says so, as NVIDIA's own stub does. */
#define EXPORT __attribute__((visibility("default")))

enum { STUB_LIBRARY = 34 };

EXPORT int cuInit(unsigned flags) { (void)flags; return STUB_LIBRARY; }
EXPORT int cuDriverGetVersion(int *version) { (void)version; return STUB_LIBRARY; }
EXPORT int cuDeviceGetCount(int *count) { (void)count; return STUB_LIBRARY; }
EXPORT int cuDeviceGet(int *device, int ordinal) { (void)device; (void)ordinal; return STUB_LIBRARY; }
EXPORT int cuGetProcAddress(const char *name, void **out, int version, unsigned long long flags) {
    (void)name; (void)out; (void)version; (void)flags;
    return STUB_LIBRARY;
}
EXPORT int cuGetProcAddress_v2(const char *name, void **out, int version, unsigned long long flags, int *status) {
    (void)status;
    return cuGetProcAddress(name, out, version, flags);
}
EXPORT int cuGetErrorName(int error, const char **name) {
    *name = error == STUB_LIBRARY ? "CUDA_ERROR_STUB_LIBRARY" : "CUDA_ERROR_UNKNOWN";
    return 0;
}
EXPORT int cuGetErrorString(int error, const char **text) {
    *text = error == STUB_LIBRARY ? "CUDA driver is a stub library" : "unknown error";
    return 0;
}
