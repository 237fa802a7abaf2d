/*===- fake_hip_library.c - a libamdhip64 with one device and no driver ---------------------------------===*/
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int hipInit(unsigned flags) {
  return flags != 0;
}
EXPORT int hipGetDeviceCount(int *count) {
  return *count = 1, 0;
}
EXPORT int hipGetDevice(int *device) {
  return *device = 0, 0;
}
EXPORT int hipSetDevice(int device) {
  return device != 0;
}
EXPORT int hipDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 87 ? 64 : 65536; /* lanes of a wave; compute units and bytes of LDS */
  return device != 0;
}
EXPORT int hipGetDevicePropertiesR0600(void *properties, int device) {
  strcpy((char *)properties + 1160, "gfx942:sramecc+:xnack-");
  return device != 0;
}
EXPORT int hipModuleLoadData(void **module, const void *image) {
  return *module = 0, image == 0;
}
EXPORT int hipModuleUnload(void *module) {
  return module != 0;
}
EXPORT int hipModuleGetFunction(void **function, void *module, const char *name) {
  return *function = 0, module != 0 || name == 0;
}
EXPORT int hipModuleLaunchKernel(void) {
  return 1;
}
EXPORT int hipStreamWaitEvent(void) {
  return 1;
}
EXPORT int hipStreamIsCapturing(void) {
  return 1;
}
EXPORT int hipEventRecord(void) {
  return 1;
}
