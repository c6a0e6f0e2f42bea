// SPDX-License-Identifier: MIT
#pragma once
#include <map>
#include <string>
#include <vector>

#include <hdf5.h>

/// HDF5 files through the C interface only: tests write files that the program would not write, and read
/// files that it wrote.
namespace cli {

/// An array to write, valid or not.
struct Array {
    std::vector<hsize_t> shape;
    std::vector<double> values;
};
using Arrays = std::map<std::string, Array>;
using Texts = std::map<std::string, std::string>;

inline void write_file(const std::string& file, const Arrays& arrays, const Texts& attributes = {},
                       const std::map<std::string, double>& numbers = {}) {
    const hid_t out = H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (const auto& [name, array] : arrays) {
        const hid_t space =
            H5Screate_simple(static_cast<int>(array.shape.size()), array.shape.data(), nullptr);
        const hid_t data =
            H5Dcreate2(out, name.c_str(), H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.values.data());
        H5Dclose(data);
        H5Sclose(space);
    }
    for (const auto& [name, text] : attributes) {  // of fixed length: the program only reads these
        const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
        H5Tset_size(type, text.size());
        const hid_t attribute = H5Acreate2(out, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
        H5Awrite(attribute, type, text.data());
        H5Aclose(attribute);
        H5Sclose(space);
        H5Tclose(type);
    }
    for (const auto& [name, number] : numbers) {
        const hid_t space = H5Screate(H5S_SCALAR);
        const hid_t attribute =
            H5Acreate2(out, name.c_str(), H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT);
        H5Awrite(attribute, H5T_NATIVE_DOUBLE, &number);
        H5Aclose(attribute);
        H5Sclose(space);
    }
    H5Fclose(out);
}

inline std::vector<hsize_t> read_shape(const std::string& file, const char* name) {
    const hid_t in = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
                data = H5Dopen2(in, name, H5P_DEFAULT);
    const hid_t space = H5Dget_space(data);
    std::vector<hsize_t> shape(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, shape.data(), nullptr);
    H5Sclose(space);
    H5Dclose(data);
    H5Fclose(in);
    return shape;
}

inline std::vector<double> read_array(const std::string& file, const char* name) {
    const hid_t in = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
                data = H5Dopen2(in, name, H5P_DEFAULT);
    const hid_t space = H5Dget_space(data);
    std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Sclose(space);
    H5Dclose(data);
    H5Fclose(in);
    return values;
}

/// Puts other numbers into an array in the file.
inline void overwrite_array(const std::string& file, const char* name, const std::vector<double>& values) {
    const hid_t out = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT),
                data = H5Dopen2(out, name, H5P_DEFAULT);
    H5Dwrite(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(data);
    H5Fclose(out);
}

inline void change_last_number(const std::string& file, const char* name, double value) {
    std::vector<double> values = read_array(file, name);
    values.back() = value;
    overwrite_array(file, name, values);
}

}  // namespace cli
