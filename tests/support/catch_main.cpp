//===- catch_main.cpp - main() of the Catch2 tests, compiled once ---------------------------------------===//

#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
