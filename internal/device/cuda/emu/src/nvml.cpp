// A stand-in for libnvidia-ml: what this process has of the memory of an emulated GPU.
#include "fake.h"

#include <unistd.h>

enum { INVALID_ARGUMENT = 2, NO_PERMISSION = 4, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9 };
struct Process { // nvmlProcessInfo_v2_t
	unsigned pid;
	unsigned long long bytes;
	unsigned instance, computing;
};

// What it is asked with is the PCI address of cuDeviceGetPCIBusId.
static const unsigned first = 0x3b;

static std::string how() {
	const char *v = getenv("EMU_NVML");
	return v ? v : "";
}

API int nvmlInit_v2() { return how() == "broken" ? DRIVER_NOT_LOADED : 0; }
API int nvmlShutdown() { return 0; }
API const char *nvmlErrorString(int e) {
	return e == DRIVER_NOT_LOADED ? "Driver Not Loaded"
		: e == NO_PERMISSION ? "Insufficient Permissions" : "Invalid Argument";
}

API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
	unsigned number;
	if (sscanf(bus, "0000:%2X:00.0", &number) != 1 || number < first) return INVALID_ARGUMENT;
	*device = (void *)(uintptr_t)number;
	return 0;
}

// Another process has a context, too, and one that is hidden has the number that no process has
// here.
API int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, Process *list) {
	if (how() == "closed") return NO_PERMISSION;
	unsigned room = *n, own = 0;
	long long bytes = taken((int)(uintptr_t)device - first);
	if (bytes >= 0) own = 1;
	*n = 1 + own;
	if (room < *n) return INSUFFICIENT_SIZE;
	list[0] = {1, 1ull << 40, ~0u, ~0u};
	if (own) list[1] = {how() == "hidden" ? 0u : (unsigned)getpid(), (unsigned long long)bytes, ~0u, ~0u};
	return 0;
}
