/* csw.h as C++11, twice, in the same program as C99's. The build fails when it is none. */
#include "csw/csw.h"
#include "csw/csw.h"

extern "C" const char *api_cxx11_version(void);

extern "C" const char *api_cxx11_version(void)
{
	csw_close(nullptr);
	return csw_version();
}
