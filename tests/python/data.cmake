# data_x.py becomes the test python.data_x, where the module _muster_data is built: muster.data with torch and h5py; they start `muster run` by themselves.
if(NOT TARGET muster_data)
  return()
endif()
foreach(name IN ITEMS dataset sampler loader ranks tables)
  add_test(NAME python.data_${name} COMMAND ${MUSTER_TEST_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/data_${name}.py)
  set_tests_properties(python.data_${name} PROPERTIES LABELS python PROCESSORS 2 COST 180 TIMEOUT 240 SKIP_RETURN_CODE 77 ENVIRONMENT "${environment}")
endforeach()
