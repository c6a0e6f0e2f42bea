// SPDX-License-Identifier: MIT
// Empty: the headers that every test needs are compiled before it (tests/CMakeLists.txt).
