// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/lower_product.hpp"

#include <algorithm>
#include <string_view>

#include <cblas.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::linalg {
namespace {

using Eigen::Index;

#if defined(__AVX2__) && defined(__FMA__)
constexpr bool fast_vectors = true;
#else
constexpr bool fast_vectors = false;  // OpenBLAS finds the processor's vectors when it is loaded
#endif
constexpr Index most_rows_of_tiles = 400;  // beyond, panels outgrow the caches: less gain over dtrmm
constexpr Index most_rows_of_strips = 200, rows_of_strip = 16;

/// Whether OpenBLAS multiplies thin matrices without a copy: its kernels for AVX-512 do.
bool thin_products_are_fast() {
    const std::string_view core = openblas_get_corename();
    return core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids";
}

template <class Scalar>
using Packet = typename Eigen::internal::packet_traits<Scalar>::type;
template <class Scalar>
constexpr Index lanes = sizeof(Packet<Scalar>) / sizeof(Scalar);
template <class Scalar>
constexpr Index rows_of_group = 2 * lanes<Scalar>;
constexpr int columns_of_tile = 6;

/// The first group is the incomplete one: its panel is the shortest, so its padding costs least.
template <class Scalar>
Index end_of_first_group(Index size) {
    return (size - 1) % rows_of_group<Scalar> + 1;
}

template <class Scalar>
Eigen::VectorX<Scalar> panels_of(const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>& lower) {
    constexpr Index group = rows_of_group<Scalar>;
    const Index first_end = end_of_first_group<Scalar>(lower.rows());
    Index size = 0;
    for (Index end = first_end; end <= lower.rows(); end += group) size += group * end;
    Eigen::VectorX<Scalar> panels = Eigen::VectorX<Scalar>::Zero(size);
    Scalar* out = panels.data();
    for (Index begin = 0, end = first_end; end <= lower.rows(); begin = end, end += group) {
        for (Index column = 0; column < end; ++column, out += group)
            std::copy_n(&lower(begin, column), end - begin, out);
    }
    return panels;
}

/// Rows [end - rows, end) of L X for six columns of X. The sums stay in registers: two vectors of rows times
/// six columns fill twelve of sixteen. Each entry is a sum over k = 0, 1, 2, ... in order.
template <class Scalar>
void multiply_tile(const Scalar* panel, Index rows, Index end, const Scalar* x, Index x_stride,
                   Scalar* product, Index product_stride) {
    using namespace Eigen::internal;
    using P = Packet<Scalar>;
    constexpr Index width = lanes<Scalar>;
    P upper[columns_of_tile], lower[columns_of_tile];
#pragma GCC unroll 6
    for (int j = 0; j < columns_of_tile; ++j) upper[j] = lower[j] = pset1<P>(0);
    Index k = 0;
    for (const Index end_of_upper = end - std::max<Index>(rows - width, 0); k < end_of_upper; ++k) {
        const P factor_upper = ploadu<P>(panel), factor_lower = ploadu<P>(panel + width);
        panel += 2 * width;
#pragma GCC unroll 6
        for (int j = 0; j < columns_of_tile; ++j) {
            const P entry = pset1<P>(x[k + j * x_stride]);
            upper[j] = pmadd(factor_upper, entry, upper[j]);
            lower[j] = pmadd(factor_lower, entry, lower[j]);
        }
    }
    for (; k < end; ++k) {  // the upper half of the panel is 0
        const P factor_lower = ploadu<P>(panel + width);
        panel += 2 * width;
#pragma GCC unroll 6
        for (int j = 0; j < columns_of_tile; ++j)
            lower[j] = pmadd(factor_lower, pset1<P>(x[k + j * x_stride]), lower[j]);
    }
    if (rows == 2 * width) {
#pragma GCC unroll 6
        for (int j = 0; j < columns_of_tile; ++j) {
            pstoreu(product + j * product_stride, upper[j]);
            pstoreu(product + j * product_stride + width, lower[j]);
        }
        return;
    }
    Scalar padded[2 * width];
#pragma GCC unroll 6
    for (int j = 0; j < columns_of_tile; ++j) {
        pstoreu(padded, upper[j]);
        pstoreu(padded + width, lower[j]);
        std::copy_n(padded, rows, product + j * product_stride);
    }
}

/// L X for six columns of X.
template <class Scalar>
void multiply_six(const Eigen::VectorX<Scalar>& panels, Index size, const Scalar* x, Index x_stride,
                  Scalar* product, Index product_stride) {
    constexpr Index group = rows_of_group<Scalar>;
    const Scalar* panel = panels.data();
    for (Index begin = 0, end = end_of_first_group<Scalar>(size); end <= size; begin = end, end += group) {
        multiply_tile(panel, end - begin, end, x, x_stride, product + begin, product_stride);
        panel += group * end;
    }
}

/// The last columns are filled up to six: another kernel for them might round otherwise.
template <class Scalar, class ConstRef, class Ref>
void multiply_by_tiles(const Eigen::VectorX<Scalar>& panels, const ConstRef& x, Ref& product) {
    const Index size = x.rows(), rest = x.cols() % columns_of_tile;
    for (Index first = 0; first < x.cols() - rest; first += columns_of_tile) {
        multiply_six(panels, size, x.col(first).data(), x.outerStride(), product.col(first).data(),
                     product.outerStride());
    }
    if (rest == 0) return;
    Eigen::Matrix<Scalar, Eigen::Dynamic, columns_of_tile> padded, result(size, columns_of_tile);
    padded.setZero(size, columns_of_tile);
    padded.leftCols(rest) = x.rightCols(rest);
    multiply_six(panels, size, padded.data(), size, result.data(), size);
    product.rightCols(rest) = result.leftCols(rest);
}

void multiply_in_place(const Matrix& lower, MatrixRef& x) {
    cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, static_cast<int>(x.rows()),
                static_cast<int>(x.cols()), 1, lower.data(), static_cast<int>(lower.rows()), x.data(),
                static_cast<int>(x.outerStride()));
}

void multiply_in_place(const FloatMatrix& lower, FloatMatrixRef& x) {
    cblas_strmm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, static_cast<int>(x.rows()),
                static_cast<int>(x.cols()), 1, lower.data(), static_cast<int>(lower.rows()), x.data(),
                static_cast<int>(x.outerStride()));
}

}  // namespace

template <class Scalar>
LowerFactor<Scalar>::LowerFactor(Matrix lower) : lower_(std::move(lower)) {
    check_size("columns of a triangle", lower_.cols(), lower_.rows());
    check_at_least("rows of a triangle", lower_.rows(), 1);
    if (fast_vectors && lower_.rows() <= most_rows_of_tiles && !thin_products_are_fast())
        panels_ = panels_of(lower_);
}

template <class Scalar>
void LowerFactor<Scalar>::multiply(const Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>& x,
                                   Eigen::Ref<Matrix, 0, Eigen::OuterStride<>> product) const {
    const Index size = lower_.rows();
    check_size("rows of the second factor", x.rows(), size);
    check_size("rows of the product", product.rows(), size);
    check_size("columns of the product", product.cols(), x.cols());
    if (uses_own_kernel()) return multiply_by_tiles(panels_, x, product);
    const SerialBlas serial;
    if (size <= most_rows_of_strips && thin_products_are_fast()) {
        for (Index first = 0; first < size; first += rows_of_strip) {
            const Index width = std::min(rows_of_strip, size - first), end = first + width;
            linalg::multiply(1, lower_.block(first, 0, width, end), Transpose::no, x.topRows(end),
                             Transpose::no, 0, product.middleRows(first, width));
        }
        return;
    }
    product = x;
    multiply_in_place(lower_, product);
}

template class LowerFactor<double>;
template class LowerFactor<float>;

}  // namespace bayesaim::linalg
