// Faults for LD_PRELOAD: pread() of the file whose name ends in $READ_FAULT_NAME fails with EIO from byte $READ_FAULT_FROM on, and pwrite() of the one whose name ends
// in $WRITE_FAULT_NAME from the call number $WRITE_FAULT_FROM on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int has_name(int fd, char const* name) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t const length = readlink(link, path, sizeof path - 1);
    if (name == NULL || length < 0) return 0;
    path[length] = 0;
    size_t const wanted = strlen(name);
    return (size_t)length >= wanted && strcmp(path + length - wanted, name) == 0;
}

static int is_meant(int fd, off_t offset) {
    char const* const from = getenv("READ_FAULT_FROM");
    return offset >= (from != NULL ? atoll(from) : 0) && has_name(fd, getenv("READ_FAULT_NAME"));
}

static ssize_t read_or_fail(char const* real_name, int fd, void* buffer, size_t count, off_t offset) {
    if (is_meant(fd, offset)) {
        errno = EIO;
        return -1;
    }
    ssize_t (*real)(int, void*, size_t, off_t) = NULL;
    *(void**)(&real) = dlsym(RTLD_NEXT, real_name);
    return real(fd, buffer, count, offset);
}

ssize_t pread(int fd, void* buffer, size_t count, off_t offset) {
    return read_or_fail("pread", fd, buffer, count, offset);
}
ssize_t pread64(int fd, void* buffer, size_t count, off_t offset) {
    return read_or_fail("pread64", fd, buffer, count, offset);
}

static ssize_t write_or_fail(char const* real_name, int fd, void const* buffer, size_t count, off_t offset) {
    static int calls;
    char const* const from = getenv("WRITE_FAULT_FROM");
    if (has_name(fd, getenv("WRITE_FAULT_NAME")) && ++calls >= (from != NULL ? atoi(from) : 0)) {
        errno = EIO;
        return -1;
    }
    ssize_t (*real)(int, void const*, size_t, off_t) = NULL;
    *(void**)(&real) = dlsym(RTLD_NEXT, real_name);
    return real(fd, buffer, count, offset);
}

ssize_t pwrite(int fd, void const* buffer, size_t count, off_t offset) {
    return write_or_fail("pwrite", fd, buffer, count, offset);
}
ssize_t pwrite64(int fd, void const* buffer, size_t count, off_t offset) {
    return write_or_fail("pwrite64", fd, buffer, count, offset);
}
