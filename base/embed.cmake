# Writes OUT, a C file that holds the texts of FILES (separated by "|") and hands them out by FUNCTION,
# which HEADER declares:
#	cmake -DOUT=embedded.c -DHEADER=x/embedded.h -DFUNCTION=x_files "-DFILES=a.c|b.h" -P embed.cmake
string(REPLACE "|" ";" FILES "${FILES}")
set(arrays "")
set(list "")
set(number 0)
foreach(path ${FILES})
	file(READ ${path} hex HEX)
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
	string(REGEX REPLACE "(................................................................................)" "\\1\n\t" bytes "${bytes}")
	get_filename_component(name ${path} NAME)
	string(APPEND arrays "/* ${name} */\nstatic const unsigned char file${number}[] = {\n\t${bytes}0};\n\n")
	string(APPEND list "\t{\"${name}\", (const char *)file${number}, sizeof file${number} - 1},\n")
	math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT}.new "/* Made by base/embed.cmake. */
#include \"${HEADER}\"

${arrays}const struct embedded_file *${FUNCTION}(void)
{
	static const struct embedded_file files[] = {
${list}	{NULL, NULL, 0}};
	return files;
}
")
file(RENAME ${OUT}.new ${OUT})
