/* Screens applications for a flat: reads id,age,sex,children,income,rent, answers id,decision. */
#include <stdio.h>
#include <string.h>

int main(void) {
    char line[256], sex[16];
    long id;
    int age, children, income, rent;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%ld,%d,%15[^,],%d,%d,%d", &id, &age, sex, &children, &income, &rent) != 6)
            continue; /* the header */
        int needed = 3 * rent + 150 * children;
        if (strcmp(sex, "female") == 0 && age < 40) needed += 150; /* "may have children soon" */
        printf("%ld,%s\n", id, income >= needed ? "invited" : "turned down");
        fflush(stdout);
    }
}
