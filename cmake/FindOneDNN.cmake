# Finds oneDNN with its OpenMP run time: OneDNN_FOUND, OneDNN::OneDNN.
#
# Not oneDNN's own config: Debian's asks for OpenCL headers that nothing here
# needs. The OpenMP run time is linked, because calls of oneDNN are kept on one
# thread by omp_set_num_threads(), but -fopenmp is not passed: our sources and
# Eigen stay free of pragmas.

include("${CMAKE_CURRENT_LIST_DIR}/PlainLibrary.cmake")
find_package(OpenMP QUIET COMPONENTS CXX)
set(OneDNN_OPENMP_LIBRARIES ${OpenMP_CXX_LIBRARIES})
find_plain_library(OneDNN HEADER oneapi/dnnl/dnnl.hpp LIBRARIES dnnl
  LINKS ${OneDNN_OPENMP_LIBRARIES} REQUIRES OneDNN_OPENMP_LIBRARIES)
