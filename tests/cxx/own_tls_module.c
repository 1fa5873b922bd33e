/* own_tls_module.c - a library with a thread-local variable, to be loaded while processes run. */
static _Thread_local long variable = 99;

__attribute__((visibility("default"))) long *module_variable(void);

long *module_variable(void)
{
	return &variable;
}
