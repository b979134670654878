#pragma once

void settle_memory(void);
