// SPDX-License-Identifier: MIT
#include "bayesaim/core/hdf5_driver.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>
#include <memory>

#include <fcntl.h>
#include <hdf5.h>
#include <unistd.h>
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

namespace bayesaim {
namespace {

/// Copied with the access properties.
struct Settings {
    int* error;
};

/// HDF5 knows a file by its first member.
struct File {
    H5FD_t base{};
    int descriptor = -1;
    int* error = nullptr;
    haddr_t allocated = 0, end = 0;  // what HDF5 asked for, and what was written
};

File& of(H5FD_t* file) { return *reinterpret_cast<File*>(file); }
const File& of(const H5FD_t* file) { return *reinterpret_cast<const File*>(file); }

void keep(const File& file, int error) {
    if (*file.error == 0) *file.error = error != 0 ? error : EIO;
}

H5FD_t* open_file(const char* name, unsigned, hid_t access, haddr_t) {
    const auto* settings = static_cast<const Settings*>(H5Pget_driver_info(access));
    auto file = std::make_unique<File>();
    file->descriptor = open(name, O_RDWR | O_CLOEXEC);
    file->error = settings->error;
    if (file->descriptor >= 0) return &file.release()->base;
    keep(*file, errno);
    return nullptr;
}

herr_t close_file(H5FD_t* handle) {
    const std::unique_ptr<File> file(&of(handle));
    if (close(file->descriptor) != 0) keep(*file, errno);
    return 0;
}

int compare(const H5FD_t* a, const H5FD_t* b) { return std::less<>()(a, b) ? -1 : a != b; }

herr_t query(const H5FD_t*, unsigned long* flags) {
    if (flags != nullptr)
        *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
                 H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

haddr_t allocated(const H5FD_t* file, H5FD_mem_t) { return of(file).allocated; }

herr_t allocate(H5FD_t* file, H5FD_mem_t, haddr_t size) {
    of(file).allocated = size;
    return 0;
}

haddr_t end(const H5FD_t* file, H5FD_mem_t) { return of(file).end; }

herr_t read_bytes(H5FD_t* handle, H5FD_mem_t, hid_t, haddr_t at, std::size_t size, void* out) {
    auto* bytes = static_cast<char*>(out);
    for (std::size_t done = 0; done < size;) {
        const ssize_t count =
            pread(of(handle).descriptor, bytes + done, size - done, static_cast<off_t>(at + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) keep(of(handle), errno);
        if (count <= 0) {
            std::fill(bytes + done, bytes + size, '\0');  // as HDF5 reads beyond the end
            break;
        }
        done += static_cast<std::size_t>(count);
    }
    return 0;
}

herr_t write_bytes(H5FD_t* handle, H5FD_mem_t, hid_t, haddr_t at, std::size_t size, const void* data) {
    File& file = of(handle);
    const auto* bytes = static_cast<const char*>(data);
    for (std::size_t done = 0; done < size && *file.error == 0;) {
        const ssize_t count =
            pwrite(file.descriptor, bytes + done, size - done, static_cast<off_t>(at + done));
        if (count > 0) {
            done += static_cast<std::size_t>(count);
        } else if (count == 0 || errno != EINTR) {
            keep(file, count == 0 ? ENOSPC : errno);
        }
    }
    file.end = std::max<haddr_t>(file.end, at + size);
    return 0;
}

herr_t truncate_file(H5FD_t* handle, hid_t, hbool_t) {
    File& file = of(handle);
    if (*file.error == 0 && ftruncate(file.descriptor, static_cast<off_t>(file.allocated)) != 0)
        keep(file, errno);
    file.end = file.allocated;
    return 0;
}

H5FD_class_t driver_class() {
    H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
    driver.version = H5FD_CLASS_VERSION;
    driver.value = static_cast<H5FD_class_value_t>(512);  // one of those for drivers of users
#endif
    driver.name = "bayesaim";
    driver.maxaddr = static_cast<haddr_t>(std::numeric_limits<off_t>::max());
    driver.fc_degree = H5F_CLOSE_WEAK;
    driver.fapl_size = sizeof(Settings);
    driver.open = open_file;
    driver.close = close_file;
    driver.cmp = compare;
    driver.query = query;
    driver.get_eoa = allocated;
    driver.set_eoa = allocate;
    driver.get_eof = end;
    driver.read = read_bytes;
    driver.write = write_bytes;
    driver.truncate = truncate_file;
    constexpr H5FD_mem_t kinds[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(kinds), std::end(kinds), driver.fl_map);
    return driver;
}

}  // namespace

Hdf5Handle access_that_keeps_errors(int& error) {
    static const H5FD_class_t driver = driver_class();
    static const hid_t registered = H5FDregister(&driver);
    Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    const Settings settings{&error};
    H5Pset_driver(access.get(), registered, &settings);
    return access;
}

}  // namespace bayesaim
