// SPDX-License-Identifier: MIT
// Preloaded into the program: lets calls on files below FAULTS_BELOW fail, from the FAULTS_FROM-th on, with the error
// FAULTS_ERRNO; 0 kills the process instead. FAULTS_LOCKS is an error that every lock fails with. FAULTS_COUNT is a
// file that gets a byte for every call.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static long number(const char* name) {
    const char* text = getenv(name);
    return text == NULL ? -1 : atol(text);
}

// Whether this call fails. `frees` calls, which a full disk allows, do so on a read-only one alone.
static int fails(const char* path, int frees) {
    static long calls = 0;
    const char* below = getenv("FAULTS_BELOW");
    if (below == NULL || path == NULL || strncmp(path, below, strlen(below)) != 0) return 0;
    const long error = number("FAULTS_ERRNO");
    if (frees && error != 0 && error != EROFS) return 0;
    const long call = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    const char* count = getenv("FAULTS_COUNT");
    if (count != NULL) {
        static int (*real)(const char*, int, ...) = NULL;
        if (real == NULL) real = dlsym(RTLD_NEXT, "open");
        const int file = real(count, O_WRONLY | O_CREAT | O_APPEND, 0600);
        static ssize_t (*put)(int, const void*, size_t) = NULL;
        if (put == NULL) put = dlsym(RTLD_NEXT, "write");
        if (put(file, ".", 1) < 0) abort();
        close(file);
    }
    if (number("FAULTS_FROM") < 0 || call < number("FAULTS_FROM")) return 0;
    if (error == 0) kill(getpid(), SIGKILL);
    errno = (int)error;
    return 1;
}

static int fails_on(int file, int frees) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    return fails(path, frees);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                              \
    int name(const char* path, int flags, ...) {                \
        va_list list;                                           \
        va_start(list, flags);                                  \
        const int mode = (flags & O_CREAT) ? va_arg(list, int) : 0; \
        va_end(list);                                           \
        if ((flags & O_ACCMODE) != O_RDONLY && fails(path, 0)) return -1; \
        return REAL(name)(path, flags, mode);                   \
    }
OPEN(open)
OPEN(open64)

FILE* fopen64(const char* path, const char* mode) {
    if (strpbrk(mode, "wa+") != NULL && fails(path, 0)) return NULL;
    return REAL(fopen64)(path, mode);
}

ssize_t write(int file, const void* data, size_t size) {
    return fails_on(file, 0) ? -1 : REAL(write)(file, data, size);
}
ssize_t pwrite(int file, const void* data, size_t size, off_t at) {
    return fails_on(file, 0) ? -1 : REAL(pwrite)(file, data, size, at);
}
ssize_t pwrite64(int file, const void* data, size_t size, off64_t at) {
    return fails_on(file, 0) ? -1 : REAL(pwrite64)(file, data, size, at);
}
int posix_fallocate(int file, off_t at, off_t size) {
    return fails_on(file, 0) ? errno : REAL(posix_fallocate)(file, at, size);
}
int fsync(int file) { return fails_on(file, 0) ? -1 : REAL(fsync)(file); }
int fdatasync(int file) { return fails_on(file, 0) ? -1 : REAL(fdatasync)(file); }
int ftruncate(int file, off_t size) { return fails_on(file, 1) ? -1 : REAL(ftruncate)(file, size); }
int ftruncate64(int file, off64_t size) { return fails_on(file, 1) ? -1 : REAL(ftruncate64)(file, size); }
int rename(const char* from, const char* to) { return fails(from, 1) ? -1 : REAL(rename)(from, to); }
int unlink(const char* path) { return fails(path, 1) ? -1 : REAL(unlink)(path); }
int remove(const char* path) { return fails(path, 1) ? -1 : REAL(remove)(path); }
int mkdir(const char* path, mode_t mode) { return fails(path, 0) ? -1 : REAL(mkdir)(path, mode); }

static int no_locks(void) {
    const long error = number("FAULTS_LOCKS");
    if (error > 0) errno = (int)error;
    return error > 0;
}

int flock(int file, int what) { return no_locks() ? -1 : REAL(flock)(file, what); }

#define FCNTL(name)                                                                            \
    int name(int file, int command, ...) {                                                     \
        va_list list;                                                                          \
        va_start(list, command);                                                               \
        void* argument = va_arg(list, void*);                                                  \
        va_end(list);                                                                          \
        if ((command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK) && no_locks()) return -1; \
        return REAL(name)(file, command, argument);                                            \
    }
FCNTL(fcntl)
FCNTL(fcntl64)
