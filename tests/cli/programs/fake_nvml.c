/* A FAKE of NVIDIA's management library, under its name in a folder for LD_LIBRARY_PATH: two GPUs of 80 GiB a node, whose use tells the node and the GPU: in a node
 * called node2 GPU 1 is 21 % busy, has 2 GiB in use and takes 201 W. GPU 1 is slowed down by heat, and has errors that it has mended. FAKE_NVML_HANGS=FILE: how busy a GPU is is never answered; FILE is
 * made when it was asked. As the real one of driver 580 it has a thread of its own, which has blocked no signal. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { success = 0, invalid_argument = 2, not_supported = 3, not_found = 6, gpus = 2 };
static int marks[gpus]; /* their addresses stand for the GPUs */

static unsigned number_of_node(void) {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return strncmp(name, "node", 4) == 0 ? (unsigned)atoi(name + 4) : 0;
}
static unsigned number_of(void* gpu) {
    return (unsigned)((int*)gpu - marks);
}
static void name_uuid(unsigned gpu, char* to, unsigned size) {
    snprintf(to, size, "GPU-fake-%u-%u", number_of_node(), gpu);
}

static void* wait_for_ever(void* unused) {
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    for (;;) pause();
    return unused;
}
int nvmlInit_v2(void) {
    pthread_t thread;
    return pthread_create(&thread, NULL, wait_for_ever, NULL) == 0 ? success : invalid_argument;
}
int nvmlShutdown(void) { return success; }
char const* nvmlErrorString(int code) { return code == success ? "success" : "a fake's error"; }
int nvmlDeviceGetCount_v2(unsigned* count) { return *count = gpus, success; }
int nvmlSystemGetDriverVersion(char* to, unsigned size) { return snprintf(to, size, "fake"), success; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
    if (index >= gpus) return invalid_argument;
    return *gpu = &marks[index], success;
}
int nvmlDeviceGetHandleByUUID(char const* uuid, void** gpu) {
    for (unsigned i = 0; i < gpus; ++i) {
        char own[80];
        name_uuid(i, own, sizeof own);
        if (strcmp(own, uuid) == 0) return *gpu = &marks[i], success;
    }
    return not_found;
}
int nvmlDeviceGetUUID(void* gpu, char* to, unsigned size) { return name_uuid(number_of(gpu), to, size), success; }
int nvmlDeviceGetName(void* gpu, char* to, unsigned size) { return snprintf(to, size, "fake GPU %u", number_of(gpu)), success; }
struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};
int nvmlDeviceGetPciInfo_v3(void* gpu, struct pci_info* info) {
    memset(info, 0, sizeof *info);
    info->bus = 0xf0 + number_of(gpu);
    return success;
}
int nvmlDeviceGetMemoryInfo(void* gpu, unsigned long long* total_free_used) {
    unsigned long long const gib = 1ULL << 30;
    total_free_used[0] = 80 * gib;
    total_free_used[2] = (number_of(gpu) + 1) * gib;
    total_free_used[1] = total_free_used[0] - total_free_used[2];
    return success;
}
int nvmlDeviceGetUtilizationRates(void* gpu, unsigned* gpu_and_memory) {
    char const* const hangs = getenv("FAKE_NVML_HANGS");
    if (hangs != NULL) fclose(fopen(hangs, "w"));
    while (hangs != NULL) pause();
    gpu_and_memory[0] = 10 * number_of_node() + number_of(gpu);
    gpu_and_memory[1] = 1;
    return success;
}
int nvmlDeviceGetPowerUsage(void* gpu, unsigned* milliwatts) {
    return *milliwatts = 100000 * number_of_node() + 1000 * number_of(gpu), success;
}
int nvmlDeviceGetClockInfo(void* gpu, int type, unsigned* mhz) {
    (void)type;
    return *mhz = number_of(gpu) == 1 ? 1200 : 1900, success;
}
int nvmlDeviceGetMaxClockInfo(void* gpu, int type, unsigned* mhz) {
    (void)gpu, (void)type;
    return *mhz = 1980, success;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* gpu, unsigned long long* reasons) {
    return *reasons = number_of(gpu) == 1 ? 0x40 : 0, success;
}
int nvmlDeviceGetTemperature(void* gpu, int sensor, unsigned* celsius) {
    (void)sensor;
    return *celsius = number_of(gpu) == 1 ? 91 : 50, success;
}
int nvmlDeviceGetTotalEccErrors(void* gpu, int type, int counter, unsigned long long* errors) {
    (void)type, (void)counter;
    return *errors = 2 * number_of(gpu), success;
}
int nvmlDeviceGetRemappedRows(void* gpu, unsigned* corrected, unsigned* uncorrected, unsigned* pending, unsigned* failed) {
    *corrected = number_of(gpu), *uncorrected = 2 * number_of(gpu);
    return *pending = *failed = 0, success;
}
int nvmlDeviceGetPcieReplayCounter(void* gpu, unsigned* replays) { return *replays = 7 * number_of(gpu), success; }
int nvmlDeviceGetNvLinkErrorCounter(void* gpu, unsigned link, int counter, unsigned long long* errors) {
    (void)gpu, (void)counter;
    if (link >= 2) return not_supported;
    return *errors = 10, success;
}
