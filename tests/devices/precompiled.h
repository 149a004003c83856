// What most tests of this folder include, compiled once for all of them, where
// headers are precompiled at all (TAGFLOW_PCH). Nobody includes this file.
#pragma once

#include "tests/devices/kernel_fixture.h"
