// SimAI's system layer takes the path of its packet simulation if NS3_MTP is defined. It then includes this header of ns-3, and uses nothing
// of it.
#pragma once
