# libpfm4 ships no .pc file: look for its header and library. Defines the target Pfm4::Pfm4.
find_path(Pfm4_INCLUDE_DIR perfmon/pfmlib.h)
find_library(Pfm4_LIBRARY pfm)
mark_as_advanced(Pfm4_INCLUDE_DIR Pfm4_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Pfm4
	REQUIRED_VARS Pfm4_LIBRARY Pfm4_INCLUDE_DIR
	REASON_FAILURE_MESSAGE "install libpfm4-dev, or run tools/deps")

if(Pfm4_FOUND AND NOT TARGET Pfm4::Pfm4)
	add_library(Pfm4::Pfm4 UNKNOWN IMPORTED)
	set_target_properties(Pfm4::Pfm4 PROPERTIES
		IMPORTED_LOCATION ${Pfm4_LIBRARY}
		INTERFACE_INCLUDE_DIRECTORIES ${Pfm4_INCLUDE_DIR})
endif()
