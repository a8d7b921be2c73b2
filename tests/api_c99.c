/* csw.h as C99, twice. The build fails when it is none. */
#include "csw/csw.h"
#include "csw/csw.h"

const char *api_c99_version(void);

const char *api_c99_version(void)
{
	return csw_version();
}
