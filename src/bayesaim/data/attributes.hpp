// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/core/attributes.hpp"

namespace bayesaim::data {

using bayesaim::Attributes;
using bayesaim::number_attribute;
using bayesaim::text_attribute;

}  // namespace bayesaim::data
