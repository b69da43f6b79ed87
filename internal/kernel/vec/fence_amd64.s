//go:build !portable

#include "textflag.h"

TEXT ·storeFence(SB), NOSPLIT, $0-0
	SFENCE
	RET
