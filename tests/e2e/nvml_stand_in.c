/* A stand-in for NVIDIA's libnvidia-ml.so.1: as many healthy GPUs as it says, without any driver.
 * Only what the device plugin asks for; 0 is success, 3 "not supported", 10 "timeout". */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GPUS 2
#define SUCCESS 0
#define NOT_SUPPORTED 3
#define TIMEOUT 10

struct pci {
    char legacy[16];
    unsigned int domain, bus, device, id, subsystem;
    char bus_id[32];
};

static int numbers[GPUS] = {0, 1};

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { return code ? "stand-in: failed" : "stand-in: success"; }

int nvmlDeviceGetCount_v2(unsigned int *count) { *count = GPUS; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, int **gpu) { *gpu = &numbers[index]; return SUCCESS; }
int nvmlDeviceGetIndex(int *gpu, unsigned int *index) { *index = *gpu; return SUCCESS; }
int nvmlDeviceGetMinorNumber(int *gpu, unsigned int *minor) { *minor = *gpu; return SUCCESS; }
int nvmlDeviceGetName(int *gpu, char *name, unsigned int size) {
    (void)gpu;
    snprintf(name, size, "NVIDIA A100 stand-in");
    return SUCCESS;
}
int nvmlDeviceGetUUID(int *gpu, char *uuid, unsigned int size) {
    snprintf(uuid, size, "GPU-00000000-0000-0000-0000-00000000000%d", *gpu);
    return SUCCESS;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, int **gpu) {
    *gpu = &numbers[uuid[strlen(uuid) - 1] - '0'];
    return SUCCESS;
}
int nvmlDeviceGetPciInfo_v3(int *gpu, struct pci *pci) {
    memset(pci, 0, sizeof *pci);
    pci->bus = (unsigned int)*gpu + 1;
    snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", pci->bus);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
    return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(int *gpu, unsigned long long memory[3]) {
    (void)gpu;
    memory[0] = memory[1] = 40ULL << 30;
    memory[2] = 0;
    return SUCCESS;
}
int nvmlDeviceGetCudaComputeCapability(int *gpu, int *major, int *minor) {
    (void)gpu;
    *major = 8;
    *minor = 0;
    return SUCCESS;
}
int nvmlDeviceGetMigMode(int *gpu, unsigned int *now, unsigned int *next) {
    (void)gpu; (void)now; (void)next;
    return NOT_SUPPORTED;
}
int nvmlDeviceGetAddressingMode(int *gpu, void *mode) { (void)gpu; (void)mode; return NOT_SUPPORTED; }

int nvmlEventSetCreate(void **set) { *set = numbers; return SUCCESS; }
int nvmlEventSetFree(void *set) { (void)set; return SUCCESS; }
int nvmlDeviceGetSupportedEventTypes(int *gpu, unsigned long long *types) { (void)gpu; *types = 8; return SUCCESS; }
int nvmlDeviceRegisterEvents(int *gpu, unsigned long long types, void *set) {
    (void)gpu; (void)types; (void)set;
    return SUCCESS;
}
int nvmlEventSetWait_v2(void *set, void *event, unsigned int wait_ms) {
    (void)set; (void)event;
    usleep(wait_ms * 1000);
    return TIMEOUT;
}
