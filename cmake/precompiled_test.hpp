// The same for tests.
#pragma once

#include "precompiled.hpp"
#include <gtest/gtest.h>
