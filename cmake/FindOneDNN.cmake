# Finds oneDNN with its OpenMP run time: OneDNN_FOUND, OneDNN::OneDNN.
#
# Not oneDNN's own config: Debian's asks for OpenCL headers that nothing here
# needs. The OpenMP run time is linked, because calls of oneDNN are kept on one
# thread by omp_set_num_threads(), but -fopenmp is not passed: our sources and
# Eigen stay free of pragmas.

find_path(OneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(OneDNN_LIBRARY dnnl)
find_package(OpenMP QUIET COMPONENTS CXX)
set(OneDNN_OPENMP_LIBRARIES ${OpenMP_CXX_LIBRARIES})
mark_as_advanced(OneDNN_INCLUDE_DIR OneDNN_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN
  REQUIRED_VARS OneDNN_LIBRARY OneDNN_INCLUDE_DIR OneDNN_OPENMP_LIBRARIES)

if(OneDNN_FOUND AND NOT TARGET OneDNN::OneDNN)
  add_library(OneDNN::OneDNN UNKNOWN IMPORTED)
  set_target_properties(OneDNN::OneDNN PROPERTIES
    IMPORTED_LOCATION "${OneDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${OneDNN_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${OneDNN_OPENMP_LIBRARIES}")
endif()
